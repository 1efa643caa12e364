"""The plan of an EAGLE-3 head: what it must reach, what published ones needed, what it costs, go or no-go.

runs      published training runs, from ../published/training_runs.csv
assumed   what is taken where nobody measured it, each with its source
asked     what the user says: data, budget, machine
head      the head's size: parameters, operations, memory of its activations
storage   the hidden states on disk
hours     GPU hours of generation, states and training
memory    what training and the target take of each device
routes    offline, or online in one of two ways: which of them the machine and the disk allow
reasons   go, no-go or undecided, and why
make      all of it together: Plan
"""
