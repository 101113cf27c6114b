//go:build linux && amd64

package proc

import (
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"mirador/omis"
)

// userHz is the kernel's unit of utime and stime, fixed on x86-64.
const userHz = 100

// Which fields need which file; a file nobody asks for is not read.
const (
	statFields = omis.ProcParent | omis.ProcSchedulingState | omis.ProcTotalTime | omis.ProcPriority | omis.ProcSystemTime |
		omis.ProcMemorySize | omis.ProcResidentSize | omis.ProcMinorPageFaults | omis.ProcMajorPageFaults
	statusFields = omis.ProcUID | omis.ProcGID | omis.ProcMaxResidentSize | omis.ProcVolContSwitch | omis.ProcInvolContSwitch
)

// Info reads what f asks for.
func Info(p omis.ProcID, f omis.ProcFields) (omis.ProcInfo, error) {
	if err := Alive(p); err != nil {
		return omis.ProcInfo{}, err
	}
	fsp, err := procfs.NewProc(p.PID)
	if err != nil {
		return omis.ProcInfo{}, ended(p.PID)
	}
	// Linux does not account for these (OMIS 8.1.2).
	info := omis.ProcInfo{IntResidentSize: -1, Swaps: -1}
	for _, part := range []struct {
		fields omis.ProcFields
		read   func(procfs.Proc, *omis.ProcInfo, omis.ProcFields) error
	}{
		{statFields, stat}, {statusFields, status},
		{omis.ProcArgv | omis.ProcUserArgv, arguments}, {omis.ProcEnvp, environment},
		{omis.ProcFileInput | omis.ProcFileOutput, inputOutput},
	} {
		if f&part.fields == 0 {
			continue
		}
		if err := part.read(fsp, &info, f); err != nil {
			return info, readError(p.PID, err)
		}
	}
	return info, nil
}

func readError(pid int, err error) error {
	switch {
	case os.IsPermission(err):
		return omis.Errorf(omis.NoPermission, "cannot read about process %d: %v", pid, err)
	case os.IsNotExist(err):
		return ended(pid)
	}
	return omis.Errorf(omis.OSError, "cannot read about process %d: %v", pid, err)
}

func stat(p procfs.Proc, info *omis.ProcInfo, f omis.ProcFields) error {
	s, err := p.Stat()
	if err != nil {
		return err
	}
	info.Parent = s.PPID
	info.State = schedulingState(s.State)
	info.Priority = int64(s.Priority)
	info.SystemTime = float64(s.STime) / userHz
	info.MemorySize = int64(s.VSize)
	info.ResidentSize = int64(s.RSS) * int64(os.Getpagesize())
	info.MinorFaults, info.MajorFaults = int64(s.MinFlt), int64(s.MajFlt)
	if f&omis.ProcTotalTime != 0 {
		info.TotalTime = processTime(p.PID, float64(s.UTime+s.STime)/userHz)
	}
	return nil
}

// processTime asks the CPU clock of the process, which is exact; ticks is what
// the statistics say, for a process whose clock is gone.
func processTime(pid int, ticks float64) float64 {
	const scheduled = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &ts); err != nil {
		return ticks
	}
	return float64(ts.Nano()) / 1e9
}

func status(p procfs.Proc, info *omis.ProcInfo, _ omis.ProcFields) error {
	s, err := p.NewStatus()
	if err != nil {
		return err
	}
	info.UID, info.GID = int64(s.UIDs[0]), int64(s.GIDs[0])
	info.MaxResidentSize = int64(s.VmHWM)
	info.VoluntarySwitches = int64(s.VoluntaryCtxtSwitches)
	info.InvoluntaryOnes = int64(s.NonVoluntaryCtxtSwitches)
	return nil
}

func arguments(p procfs.Proc, info *omis.ProcInfo, _ omis.ProcFields) (err error) {
	info.Argv, err = p.CmdLine()
	return err
}

func environment(p procfs.Proc, info *omis.ProcInfo, _ omis.ProcFields) (err error) {
	info.Envp, err = p.Environ()
	return err
}

func inputOutput(p procfs.Proc, info *omis.ProcInfo, _ omis.ProcFields) error {
	io, err := p.IO()
	if err != nil {
		return err
	}
	info.FileInput, info.FileOutput = int64(io.ReadBytes), int64(io.WriteBytes)
	return nil
}

// schedulingState translates a state letter. Linux shows a thread that waits for
// a processor as R, like one that has it.
func schedulingState(letter string) int {
	switch letter {
	case "R":
		return omis.StateRunning
	case "Z", "X":
		return omis.StateZombie
	case "T", "t":
		return omis.StateStopped
	}
	return omis.StateBlocked
}
