"""All decisions of the scheduler, without input or output: changes and the time go in, effects come out."""
