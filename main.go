// Mirador observes running programs. See cli for its commands.
package main

import (
	"os"

	"mirador/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.Standard())) }
