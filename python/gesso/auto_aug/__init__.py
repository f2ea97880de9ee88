"""Automatic augmentation: AutoAugment, RandAugment, TrivialAugment, policies and augmentations of one's own.

For definitions with `enable_conditionals=True`.
"""
