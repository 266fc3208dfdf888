"""Renders the manifests that kustomize builds on, from the chart."""
