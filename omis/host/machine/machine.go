//go:build linux

package machine

import (
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"

	"mirador/omis"
)

// Groups of components by the bits of flags (OMIS 8.1.1).
const (
	groupName = iota
	groupSystem
	groupProcessors
	groupMemory
	groupDisks
	groupNetwork
	groupUsers
	groupSystemRates
	groupLoad
	groupFreeMemory
	groupPaging
	groupDiskRates
	groupNetworkRates
	groupLogins
	groupTotals // not of OMIS
	groups
)

// group returns the values of one group in the order of the specification.
type group func(*Machine) ([]omis.Value, error)

// table has a row for each bit.
var table = [groups]group{
	groupName:         (*Machine).nodeName,
	groupSystem:       (*Machine).system,
	groupProcessors:   (*Machine).processors,
	groupMemory:       (*Machine).memory,
	groupDisks:        (*Machine).disks,
	groupNetwork:      (*Machine).network,
	groupUsers:        (*Machine).users,
	groupSystemRates:  (*Machine).systemRates,
	groupLoad:         (*Machine).load,
	groupFreeMemory:   (*Machine).freeMemory,
	groupPaging:       (*Machine).paging,
	groupDiskRates:    (*Machine).diskRates,
	groupNetworkRates: (*Machine).networkRates,
	groupLogins:       (*Machine).logins,
	groupTotals:       (*Machine).totals,
}

// none is the value of what Linux does not have.
var none = omis.Int(-1)

// places are the paths from which a machine is read.
type places struct{ proc, sys, utmp, limits, dev string }

// Machine describes this machine.
type Machine struct {
	name   string
	files  places
	fs     procfs.FS
	blocks blockdevice.FS
	bench  benches
	kernel *averager // counters in /proc
	calls  *averager // counts of system calls
}

// Open returns the Machine for a node of the given name. It reads nothing yet.
func Open(name string) (*Machine, error) {
	return open(name, places{"/proc", "/sys", "/run/utmp", "/etc/security", "/dev"})
}

func open(name string, files places) (*Machine, error) {
	fs, err := procfs.NewFS(files.proc)
	if err != nil {
		return nil, fmt.Errorf("cannot read about the machine: %w", err)
	}
	blocks, err := blockdevice.NewFS(files.proc, files.sys)
	if err != nil {
		return nil, fmt.Errorf("cannot read about the machine: %w", err)
	}
	m := &Machine{name: name, files: files, fs: fs, blocks: blocks, bench: newBenches()}
	m.kernel = newAverager(func() (source, error) { return kernelCounters{m}, nil })
	m.calls = newAverager(openCallCounter)
	return m, nil
}

// Close ends the samplers; callers that wait for rates return.
func (m *Machine) Close() {
	m.kernel.close()
	m.calls.close()
}

// Info returns the components of the groups whose bits are set in flags; a value that
// Linux does not have is -1 or "". The first question for rates after a while takes a
// second, the first for a group with a benchmark up to half a second.
func (m *Machine) Info(flags uint32) ([]omis.Value, error) {
	if flags>>groups != 0 {
		return nil, omis.Errorf(omis.ParameterError, "node_get_info has the flags 0 to %#x, not %#x", 1<<groups-1, flags)
	}
	var values []omis.Value
	for bit, read := range table {
		if flags>>bit&1 == 0 {
			continue
		}
		vs, err := read(m)
		if err != nil {
			return nil, omis.Errorf(omis.OSError, "cannot read about node %s: %w", m.name, err)
		}
		values = append(values, vs...)
	}
	return values, nil
}

// line returns the content of a file of one line.
func line(path string) (string, error) {
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// number returns the number in a file, or none if the file does not exist or contains no
// number.
func number(path string) omis.Value {
	var n int64
	text, err := line(path)
	if err != nil {
		return none
	}
	if _, err := fmt.Sscan(text, &n); err != nil {
		return none
	}
	return omis.Int(n)
}
