"""What plot_bench.py is made of.

read     results of tslab_bench: a file in, metrics with their cells and verdicts out; what is damaged is said in one line
suite    the same for an output directory of bench/suite/run.py
style    colours, axes, legends, saving; knows no results
bench_pictures, suite_pictures   draw; each picture returns a figure or says why there is none
tables   Markdown tables
targets  what was to be reached, and whether it is
page     the page around them

Only style and the pictures need matplotlib.
"""
