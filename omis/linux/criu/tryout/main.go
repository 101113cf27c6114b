//go:build linux

// Command tryout finds out whether a CRIU can save and restore processes on this machine,
// by letting it do so. If it cannot, tryout prints the reason and the last lines of
// CRIU's log, and exits with status 1.
//
//	tryout CRIU
//
// scripts/criu runs it; no package imports it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mirador/omis/linux/criu"
)

// lastLines is the number of log lines to print.
const lastLines = 30

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tryout CRIU")
		os.Exit(2)
	}
	path, err := filepath.Abs(os.Args[1])
	if err == nil {
		_, err = (&criu.Finder{Named: path}).Find(context.Background())
	}
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	var unfit *criu.Unfit
	if errors.As(err, &unfit) {
		fmt.Fprint(os.Stderr, tail(unfit.Log, lastLines))
	}
	os.Exit(1)
}

// tail returns the last lines of a text, indented.
func tail(text string, lines int) string {
	all := slices.Collect(strings.Lines(text))
	var b strings.Builder
	for _, line := range all[max(0, len(all)-lines):] {
		fmt.Fprintln(&b, "   ", strings.TrimRight(line, "\n"))
	}
	return b.String()
}
