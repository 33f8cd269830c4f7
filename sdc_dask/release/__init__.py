"""From files to files: protected data is written whole and checked, or not at all."""
