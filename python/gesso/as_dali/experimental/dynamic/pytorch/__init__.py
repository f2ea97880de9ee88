"""`nvidia.dali.experimental.dynamic.pytorch`"""
