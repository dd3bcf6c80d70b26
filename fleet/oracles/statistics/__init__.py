"""The statistics of measurements: rank tests, their error rate, change points, charts. Pure.

The libraries are an extra (`stats`) and heavy (scipy.stats: 1 to 2 s, 90 MB): they are imported by the first
judgement of a sample only, which `load` can make in a thread beforehand.
"""
