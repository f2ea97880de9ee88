"""`nvidia.dali._utils`"""
