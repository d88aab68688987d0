"""Reports: pictures and one page of a comparison; matplotlib is imported where a picture is drawn, and only there."""
