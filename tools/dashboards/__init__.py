"""Takes lists of panels, and gives the Grafana dashboards of deploy/grafana as JSON: `python -m tools.dashboards`."""
