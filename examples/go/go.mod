module temporal-slab/examples/go

go 1.21
