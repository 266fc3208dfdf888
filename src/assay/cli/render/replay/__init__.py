"""Takes what a policy cost on past faults. Renders it as text and charts. Gives terminal text and SVG."""
