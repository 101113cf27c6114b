package measure

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"mirador/omis/host/proc"
)

// A gate stops the programs that it compares by turns. So that none stays stopped or continues
// for ever when the gate is killed, a small process of its own session, the keeper, learns about
// every process that the gate has started. When the gate ends, by whatever signal, the kernel
// closes the keeper's standard input, and the keeper ends the processes. The environment of each
// contains a mark, by which the keeper also finds those that were just being started, and their
// children.

// Keeper is the gate's connection to its keeper.
type Keeper struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	in   io.WriteCloser
	mark string // entry in the environment of the gate's programs

	killed map[int]bool // the process groups to end
}

// StartKeeper starts a keeper: self is the command that calls Keep.
func StartKeeper(self []string) (*Keeper, error) {
	cmd := exec.Command(self[0], self[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the keeper of the gate: %w", err)
	}
	k := &Keeper{cmd: cmd, in: in, killed: map[int]bool{}, mark: fmt.Sprintf("MIRADOR_GATE=%d.%d", os.Getpid(), time.Now().UnixNano())}
	return k, k.say("%s %s", wordMark, k.mark)
}

// The words of the protocol: a line is a word, a process or a directory, and for processes the
// time of its start.
const (
	wordKill   = "kill"   // end this process group
	wordEnd    = "end"    // SIGTERM to this process, which cleans up
	wordRemove = "remove" // this directory, after the others
	wordForget = "forget" // this process, which has ended
	wordMark   = "mark"   // this is in the environment of the gate's programs
)

// Kill makes the keeper end the process group of pid.
func (k *Keeper) Kill(pid int) error {
	k.mu.Lock()
	k.killed[pid] = true
	k.mu.Unlock()
	return k.process(wordKill, pid)
}

// knows reports whether the gate has started this process, or group of processes.
func (k *Keeper) knows(pid int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed[pid]
}

// End makes the keeper send SIGTERM to a process.
func (k *Keeper) End(pid int) error { return k.process(wordEnd, pid) }

// Forget makes the keeper forget a process that has ended.
func (k *Keeper) Forget(pid int) error {
	k.mu.Lock()
	delete(k.killed, pid)
	k.mu.Unlock()
	return k.say("%s %d", wordForget, pid)
}

// Remove makes the keeper remove a directory.
func (k *Keeper) Remove(dir string) error { return k.say("%s %s", wordRemove, dir) }

func (k *Keeper) process(word string, pid int) error {
	start, err := proc.ThreadStart(pid, pid)
	if err != nil {
		return nil // it has ended already
	}
	return k.say("%s %d %d", word, pid, start)
}

func (k *Keeper) say(format string, args ...any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := fmt.Fprintf(k.in, format+"\n", args...); err != nil {
		return fmt.Errorf("the keeper of the gate has ended: %w", err)
	}
	return nil
}

// Close lets the keeper do its work, and waits for its end.
func (k *Keeper) Close() error {
	k.in.Close()
	return k.cmd.Wait()
}

// kept says what the keeper does at the end with a process, which has this start time.
type kept struct {
	word  string
	start uint64
}

// Keep is the keeper: it reads from its gate, and cleans up when the gate has ended.
func Keep(in io.Reader) error {
	processes, dirs, mark := map[int]kept{}, []string{}, ""
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case wordRemove:
			dirs = append(dirs, rest)
			continue
		case wordMark:
			mark = rest
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil || pid <= 1 {
			continue
		}
		if word == wordForget {
			delete(processes, pid)
		} else if len(fields) == 2 {
			start, _ := strconv.ParseUint(fields[1], 10, 64) // 0 is the start of no process
			processes[pid] = kept{word, start}
		}
	}
	for _, word := range []string{wordKill, wordEnd} {
		for pid, k := range processes {
			if k.word == word {
				k.finish(pid)
			}
		}
	}
	sweep(mark)
	for _, dir := range dirs {
		os.RemoveAll(dir) // no reader of an error is left
	}
	return nil
}

// finish ends a process, unless another process has got its number meanwhile.
func (k kept) finish(pid int) {
	if !k.isAlive(pid) {
		return
	}
	if k.word == wordEnd {
		syscall.Kill(pid, syscall.SIGTERM)
		// The gateway may be starting a program of the gate.
		for end := time.Now().Add(longestStop); k.isAlive(pid) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		}
		return
	}
	syscall.Kill(-pid, syscall.SIGKILL)
}

func (k kept) isAlive(pid int) bool {
	start, err := proc.ThreadStart(pid, pid)
	return err == nil && start == k.start
}

// sweep kills all processes with a gate's mark.
func sweep(mark string) {
	for _, pid := range marked(mark) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}
