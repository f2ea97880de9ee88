"""`nvidia.dali._multiproc`"""
