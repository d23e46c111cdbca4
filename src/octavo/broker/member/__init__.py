"""A broker that is a member of a cluster: it carries out what `octavo.cluster` decides."""
