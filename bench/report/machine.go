//go:build linux

package report

import (
	"bytes"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Machine describes the machine of the measurement.
type Machine struct {
	Processor string `json:"processor"`
	CPUs      int    `json:"cpus"`
	Virtual   bool   `json:"virtual"`
	Kernel    string `json:"kernel"`
}

// ThisMachine describes this machine.
func ThisMachine() (Machine, error) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return Machine{}, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Machine{}, err
	}
	return Machine{
		Processor: field(info, "model name"), CPUs: runtime.NumCPU(), Kernel: unix.ByteSliceToString(name.Release[:]),
		Virtual: bytes.Contains(info, []byte(" hypervisor ")),
	}, nil
}

// field returns the value of the first line of /proc/cpuinfo with a name.
func field(info []byte, name string) string {
	for line := range bytes.Lines(info) {
		if key, value, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(key)) == name {
			return string(bytes.TrimSpace(value))
		}
	}
	return "unknown"
}

func (m Machine) String() string {
	kind := "a machine"
	if m.Virtual {
		kind = "a virtual machine"
	}
	return fmt.Sprintf("%s with %d CPUs (%s), Linux %s", kind, m.CPUs, m.Processor, m.Kernel)
}
