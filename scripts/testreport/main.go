// Command testreport runs go test and prints one line per package, the output of failed
// and skipped tests, and, at the end, the beginning of that output again, what could not
// be tested on this machine, and the totals. It fails if a test failed or was skipped:
// green means that every test ran.
//
//	testreport ARGUMENT... [-- ARGUMENT...]
//
// It runs go test once for each group of arguments. No package imports it.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

func main() {
	s := newSummary(os.Stdout)
	for _, args := range groups(os.Args[1:]) {
		if err := runTests(args, s); err != nil {
			s.broken(args, err)
		}
	}
	s.print()
	if !s.green() {
		os.Exit(1)
	}
}

// groups splits the arguments at "--".
func groups(args []string) [][]string {
	i := slices.Index(args, "--")
	if i < 0 {
		return [][]string{args}
	}
	return append([][]string{args[:i]}, groups(args[i+1:])...)
}

// runTests runs go test once. The summary reports failing tests; the error means that go
// test itself failed.
func runTests(args []string, s *summary) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	before := s.failures()
	readErr := s.read(bufio.NewReader(out))
	io.Copy(io.Discard, out)
	err = cmd.Wait()
	switch {
	case readErr != nil:
		return readErr
	case err != nil && s.failures() == before:
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}
