"""What pixel accuracy hides: the gap to mean IoU, baselines, next steps."""
