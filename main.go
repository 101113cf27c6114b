// Mirador is a lookout on running programs. See cli for its commands.
package main

import (
	"os"

	"mirador/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.Standard())) }
