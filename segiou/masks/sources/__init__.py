"""Where masks come from: folders, archives, stores, files with many masks; pairs by name."""
