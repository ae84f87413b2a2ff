"""What the commands do: functions from options to a report. The command line only reads and draws."""
