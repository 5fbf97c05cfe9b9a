"""DLPack: arrays in a device's memory as other libraries describe them."""
