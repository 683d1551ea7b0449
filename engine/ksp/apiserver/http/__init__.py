"""From the wire to a request and back: paths, media types, bodies, and the form of answers."""
