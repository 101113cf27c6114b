//go:build linux

package machine

import (
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/prometheus/procfs/nfs"

	"mirador/omis"
	"mirador/omis/host/proc"
)

// Indices of the counters read from /proc.
const (
	contextSwitches = iota
	pagedIn         // kilobytes
	pagedOut        // kilobytes
	diskReads
	diskWrites
	nfsReads
	nfsWrites
	localPackets
	fastReceived
	fastSent
	slowReceived
	slowSent
	counters
)

// kernelCounters is the source of these counters.
type kernelCounters struct{ *Machine }

func (kernelCounters) Close() error { return nil }

func (k kernelCounters) read() ([]uint64, error) {
	c := make([]uint64, counters)
	for _, part := range []func([]uint64) error{k.readSwitches, k.readPaging, k.readDisks, k.readNFS, k.readPackets} {
		if err := part(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (k kernelCounters) readSwitches(c []uint64) error {
	stat, err := k.fs.Stat()
	c[contextSwitches] = stat.ContextSwitches
	return err
}

func (k kernelCounters) readPaging(c []uint64) error {
	text, err := os.ReadFile(filepath.Join(k.files.proc, "vmstat"))
	if err != nil {
		return err
	}
	for name, value := range proc.Pairs(text) {
		switch string(name) {
		case "pgpgin":
			c[pagedIn] = uint64(proc.Number(value))
		case "pgpgout":
			c[pagedOut] = uint64(proc.Number(value))
			return nil // skips the hundreds of lines that follow
		}
	}
	return nil
}

func (k kernelCounters) readDisks(c []uint64) error {
	local, err := k.localDisks()
	if err != nil {
		return err
	}
	stats, err := k.blocks.ProcDiskstats()
	if err != nil {
		return err
	}
	for _, disk := range stats {
		if slices.Contains(local, disk.DeviceName) {
			c[diskReads] += disk.ReadIOs
			c[diskWrites] += disk.WriteIOs
		}
	}
	return nil
}

// readNFS returns no transfers if the file is missing, because the kernel's NFS client is
// not loaded.
func (k kernelCounters) readNFS(c []uint64) error {
	fs, err := nfs.NewFS(k.files.proc)
	if err != nil {
		return err
	}
	stats, err := fs.ClientRPCStats()
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c[nfsReads] = stats.V2Stats.Read + stats.V3Stats.Read + stats.ClientV4Stats.Read
	c[nfsWrites] = stats.V2Stats.Write + stats.V3Stats.Write + stats.ClientV4Stats.Write
	return nil
}

func (k kernelCounters) readPackets(c []uint64) error {
	p, err := k.packets()
	c[localPackets] = p.received[local] // each is also sent
	c[fastReceived], c[fastSent] = p.received[fast], p.sent[fast]
	c[slowReceived], c[slowSent] = p.received[slow], p.sent[slow]
	return err
}

func rate(perSecond float64) omis.Value { return omis.Int(int64(math.Round(perSecond))) }

func (m *Machine) systemRates() ([]omis.Value, error) {
	m.calls.ask() // starts the sampler, so that both wait at the same time
	r, err := m.kernel.rates()
	if err != nil {
		return nil, err
	}
	c := m.callRates()
	return []omis.Value{rate(r[contextSwitches]), c[execCalls], c[allCalls]}, nil
}

// paging converts kilobytes to pages. Linux swaps pages, not processes.
func (m *Machine) paging() ([]omis.Value, error) {
	r, err := m.kernel.rates()
	if err != nil {
		return nil, err
	}
	perPage := float64(os.Getpagesize()) / 1024
	in, out := r[pagedIn]/perPage, r[pagedOut]/perPage
	return []omis.Value{none, none, none, rate(in + out), rate(in), rate(out)}, nil
}

func (m *Machine) diskRates() ([]omis.Value, error) {
	m.calls.ask()
	r, err := m.kernel.rates()
	if err != nil {
		return nil, err
	}
	c := m.callRates()
	return []omis.Value{
		rate(r[diskReads]), rate(r[diskWrites]), rate(r[nfsReads]), rate(r[nfsWrites]), c[readCalls], c[writeCalls],
	}, nil
}

func (m *Machine) networkRates() ([]omis.Value, error) {
	r, err := m.kernel.rates()
	if err != nil {
		return nil, err
	}
	return []omis.Value{
		rate(r[localPackets]),
		rate(r[fastReceived] + r[fastSent]), rate(r[fastReceived]), rate(r[fastSent]),
		rate(r[slowReceived] + r[slowSent]), rate(r[slowReceived]), rate(r[slowSent]),
	}, nil
}
