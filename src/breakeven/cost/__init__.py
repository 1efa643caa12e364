"""What a decode step costs: the shape of a model, and the hardware that it runs on.

geometry      layers, attention, experts, precision: parameters, bytes, floating-point operations
attention     grouped-query and multi-head latent attention
precision     bits per weight, group scales counted
geometry_json the format of presets and of a geometry written by hand
configs       Hugging Face config.json, its quantisation block included
gguf_header   what a GGUF file says before its weights; gguf_geometry makes a geometry of it
presets       geometries by name, and a geometry out of any of these files
hardware      memory, bandwidth, arithmetic and links by name, with measured AllReduce times
coverage      distinct experts that some tokens use
step          what a decode step is, and what every source of its cost offers
modelled      its cost by geometry and hardware alone; anchored by one measured step besides
measured      its cost by the server's own concurrency curve
calibrate     that curve of a running baseline; stretches, visits, calibration and curve are its parts
drafting      what speculation costs beside the target's step
"""
