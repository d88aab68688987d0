"""The web page: one file of the package, and the policy that lets a browser run nothing but what stands in it."""

import base64
import hashlib
import re
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

PAGE = files("kbtools.serve").joinpath("page.html").read_bytes()


def inline_hash(element: str) -> str:
    """Give the source of Content-Security-Policy for the one script, or style sheet, of the page."""
    (text,) = re.findall(rb"<%s>(.*?)</%s>" % (element.encode(), element.encode()), PAGE, flags=re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src {inline_hash('script')}; style-src {inline_hash('style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-cache",
}


async def page(request: Request) -> Response:
    """Give the page; what it shows, it asks of the API beside it."""
    return Response(PAGE, media_type="text/html; charset=utf-8", headers=HEADERS)
