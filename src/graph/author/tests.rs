//! Files that come back as they were, and descriptions that no file can hold.
