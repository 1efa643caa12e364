"""A geometry out of a Hugging Face config.json.

architectures  which are known, and the fields that hold their sizes
quantisation   what the quantization_config block makes of each part
"""
