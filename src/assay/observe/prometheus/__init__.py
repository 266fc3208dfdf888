"""Takes the monitoring map and a Prometheus, or Alertmanager's payload; queries and maps metrics, XID gauges and alerts; gives probe readings and mapped alerts."""
