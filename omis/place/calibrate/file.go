//go:build linux

package calibrate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mirador/omis/host/owned"
	"mirador/omis/place/clock"
	"mirador/omis/program"
)

// kept is the content of the file. The figures are valid for one machine, kernel and
// program.
type kept struct {
	Machine string                             `json:"machine"`
	Kernel  string                             `json:"kernel"`
	Build   string                             `json:"build"`
	Costs   map[string]map[string]program.Cost `json:"costs"` // by placement and kind of place, in nanoseconds
}

// here returns a kept without figures, for this machine.
func here() (kept, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return kept{}, err
	}
	program, err := os.Stat("/proc/self/exe")
	if err != nil {
		return kept{}, err
	}
	model, err := processor()
	now, _ := clock.Now() // if programs cannot read a clock, that is part of the description too
	return kept{
		Machine: fmt.Sprintf("%s, clock %s: %v", model, now.Source, now.Kind),
		Kernel:  unix.ByteSliceToString(name.Release[:]) + " " + unix.ByteSliceToString(name.Version[:]),
		Build:   fmt.Sprint(program.Size(), " ", program.ModTime().UnixNano()),
	}, err
}

// processor returns the name of the machine's processors.
func processor() (string, error) {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value), nil
		}
	}
	return "", errors.New("/proc/cpuinfo does not name the processor")
}

var errElsewhere = errors.New("the figures belong to another machine, kernel or program")

func load(path string) (map[string]map[string]program.Cost, error) {
	text, err := owned.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	now, err := here()
	if err != nil {
		return nil, err
	}
	if k.Machine != now.Machine || k.Kernel != now.Kernel || k.Build != now.Build || k.Costs == nil {
		return nil, errElsewhere
	}
	return k.Costs, nil
}

// save replaces the whole file at once, so that a reader never sees a part of it.
func save(path string, costs map[string]map[string]program.Cost) error {
	k, err := here()
	if err != nil {
		return err
	}
	k.Costs = costs
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, on purpose
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
