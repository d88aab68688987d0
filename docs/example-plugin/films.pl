directed_by(jaws, spielberg).
directed_by(alien, scott).
produced_by(jaws, zanuck).
name(jaws, 'Jaws').
name(alien, 'Alien').
name(spielberg, 'Steven Spielberg').
name(scott, 'Ridley Scott').
name(zanuck, 'Richard D. Zanuck').
