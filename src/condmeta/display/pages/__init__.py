"""Pages: each is one HTML file with style, scripts and data inside (needs jinja2)."""
