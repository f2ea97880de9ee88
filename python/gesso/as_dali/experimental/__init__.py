"""`nvidia.dali.experimental`"""
