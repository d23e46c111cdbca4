"""Code that producers and consumers share: arguments, options, and answers to calls of other Kafka clients."""
