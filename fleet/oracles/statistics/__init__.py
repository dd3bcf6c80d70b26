"""The statistics of measurements: rank tests, their error rate, change points, charts. Pure.

The libraries are an extra (`stats`) and heavy (scipy.stats: 0.8 s, 60 MB): they are imported by the first
judgement of a sample only, which `load` can make in a thread beforehand.
"""
