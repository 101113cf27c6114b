//go:build gate

package shop

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGate judges the benchmarks of this package by gate.xml. It runs them in another process, nine
// times, because times need several runs. Run it with go test -tags gate.
func TestGate(t *testing.T) {
	results, err := os.Create(filepath.Join(t.TempDir(), "results.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer results.Close()
	bench := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=.", "-test.count=9", "-test.benchtime=10ms")
	bench.Stdout, bench.Stderr = results, os.Stderr
	if err := bench.Run(); err != nil {
		t.Fatal(err)
	}
	verdicts, err := exec.Command("mirador", "gate", "check", "-f", "gate.xml", results.Name()).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, verdicts)
	}
}
