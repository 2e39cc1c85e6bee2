// tslab shows what a temporal-slab allocator does. See internal/cli.
package main

import (
	"os"

	"temporal-slab/tslab/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
