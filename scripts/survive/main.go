// Command survive runs the tests of doc/survival.md repeatedly and prints how often each
// item passed. It fails unless all passed every time.
//
//	survive [-times N]
//
// No package imports it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// attachTimes makes TestAttachAndDetach attach more often than make test does.
const attachTimes = "MIRADOR_TEST_ATTACH=10000"

func main() {
	times := flag.Int("times", 20, "how often to run the list")
	flag.Parse()
	if err := survive(*times); err != nil {
		fmt.Fprintln(os.Stderr, "survive:", err)
		os.Exit(1)
	}
}

func survive(times int) error {
	dir, err := os.MkdirTemp("", "mirador-survive-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list := items()
	binaries, err := compile(dir, list)
	if err != nil {
		return err
	}
	passed, spent := make([]int, len(list)), make([]time.Duration, len(list))
	for round := range times {
		begin := time.Now()
		for i, it := range list {
			fmt.Printf("\r\033[Kround %d of %d: %s", round+1, times, it.name)
			start := time.Now()
			if out, err := run(binaries[it.pkg], it); err != nil {
				fmt.Printf("\n%v\n%s", err, out)
			} else {
				passed[i]++
			}
			spent[i] += time.Since(start)
		}
		fmt.Printf("\r\033[Kround %d of %d took %v\n", round+1, times, time.Since(begin).Round(time.Second))
	}
	return report(list, passed, spent, times)
}

// compile builds the test program of every package in the list.
func compile(dir string, list []item) (map[string]string, error) {
	binaries := make(map[string]string)
	for _, it := range list {
		if binaries[it.pkg] != "" {
			continue
		}
		file := filepath.Join(dir, filepath.Base(it.pkg)+".test")
		if out, err := exec.Command("go", "test", "-c", "-o", file, it.pkg).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot build the tests of %s: %v\n%s", it.pkg, err, out)
		}
		binaries[it.pkg] = file
	}
	return binaries, nil
}

// run runs an item's tests, each in a process of its own, in the package's directory like
// go test.
func run(binary string, it item) ([]byte, error) {
	for _, test := range it.tests {
		cmd := exec.Command(binary, "-test.run", pattern(test), "-test.v", "-test.timeout", "5m")
		cmd.Dir = it.pkg
		cmd.Env = append(os.Environ(), attachTimes)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return out, fmt.Errorf("%s: %w", test, err)
		}
		if !strings.Contains(string(out), "--- PASS: "+test) {
			return out, fmt.Errorf("%s did not run", test)
		}
	}
	return nil, nil
}

// pattern matches exactly one test.
func pattern(test string) string {
	return "^" + strings.Join(strings.Split(test, "/"), "$/^") + "$"
}

func report(list []item, passed []int, spent []time.Duration, times int) error {
	failures := 0
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for i, it := range list {
		fmt.Fprintf(w, "%s\t%d of %d\t%v each\n", it.name, passed[i], times, (spent[i] / time.Duration(times)).Round(10*time.Millisecond))
		failures += times - passed[i]
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if failures > 0 {
		return fmt.Errorf("%d failures", failures)
	}
	return nil
}
