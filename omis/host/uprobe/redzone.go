//go:build linux

package uprobe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrRedZone is the result of CheckNop if the kernel overwrites data that functions keep
// below their stack pointers.
var ErrRedZone = errors.New("this kernel replaces a nop of five bytes that has a uprobe by a call, which overwrites data that functions keep below their stack pointers")

// CheckNop finds out what the kernel does with a uprobe on a nop of five bytes that is
// not the first instruction of its function. Linux 6.18 replaces the nop by a call, which
// writes below the stack pointer, where the function may keep data. A later kernel may
// not do this, but it is unknown which. So CheckNop sets such a uprobe in a small program
// of its own, where it does no harm. The test takes about 50 ms. An error other than
// ErrRedZone is the reason why there is no result.
func CheckNop() error { return checkAt(nopOffset) }

// checkAt does the same for a uprobe at any offset in the program's file.
func checkAt(offset uint64) error {
	path, clean, err := nopProgram()
	if err != nil {
		return err
	}
	defer clean()
	cmd, in, err := startProgram(path)
	if err != nil {
		return err
	}
	wrong, err := runInto(cmd, in, path, offset)
	in.Close()
	if err != nil {
		_ = cmd.Process.Kill()
	}
	ended := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err != nil:
		return err
	case wrong, errors.As(ended, &exit):
		return ErrRedZone
	}
	return ended
}

// runInto lets the program hit a uprobe. It reports whether the kernel missed hits.
func runInto(cmd *exec.Cmd, in io.WriteCloser, path string, offset uint64) (wrong bool, err error) {
	u, err := Set(cmd.Process.Pid, path, offset, AtEntry)
	if err != nil {
		return false, err
	}
	defer func() { go u.Close() }() // no caller needs to wait for the end
	if _, err := in.Write([]byte{0}); err != nil {
		return false, err
	}
	const patience = 5 * time.Second
	for late := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
			return false, err
		}
		if info.Signo != 0 {
			break
		}
		if time.Now().After(late) {
			return false, errors.New("the program that tests uprobes on nops does not end")
		}
	}
	n, err := u.Count()
	return n != nopCalls, err
}

// startProgram starts the program, which waits for a byte. Executing the file fails with
// ETXTBSY while a process that is just being started has it open for writing; then
// startProgram tries again.
func startProgram(path string) (*exec.Cmd, io.WriteCloser, error) {
	const tries = 20
	for try := 0; ; try++ {
		cmd := exec.Command(path)
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, nil, err
		}
		if err = cmd.Start(); err == nil {
			return cmd, in, nil
		}
		in.Close()
		if !errors.Is(err, unix.ETXTBSY) || try == tries {
			return nil, nil, fmt.Errorf("cannot run the program that tests uprobes on nops: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// nopProgram writes the program into a memory file and returns a path to it.
func nopProgram() (path string, clean func(), err error) {
	fd, err := unix.MemfdCreate("mirador nop", unix.MFD_CLOEXEC)
	if err != nil {
		return "", nil, err
	}
	written := os.NewFile(uintptr(fd), "nop")
	defer written.Close()
	if _, err := written.Write(nopELF()); err != nil {
		return "", nil, err
	}
	if err := written.Chmod(0o500); err != nil {
		return "", nil, err
	}
	// The kernel does not execute a file that is open for writing.
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd()), func() { f.Close() }, nil
}

// Layout of CheckNop's program.
const (
	nopBase   = 0x400000
	nopCode   = 0x1000 // offset of the code in the file
	nopLeaf   = nopCode + 0x100
	nopOffset = nopLeaf + 10
	nopCalls  = 100
)

// nopELF returns a program that waits for a byte, calls a leaf function a hundred times,
// and exits with 1 if a result was wrong. The function keeps two words below its stack
// pointer, and executes the nop between writing and comparing them.
func nopELF() []byte {
	const pageSize, flagsRX, loadable = 0x1000, 5, 1
	le := binary.LittleEndian
	b := []byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	b = le.AppendUint16(b, 2)  // ET_EXEC
	b = le.AppendUint16(b, 62) // EM_X86_64
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, nopBase+nopCode) // entry
	b = le.AppendUint64(b, 64)              // program headers
	b = le.AppendUint64(b, 0)               // section headers
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} { // sizes and numbers of headers
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, loadable)
	b = le.AppendUint32(b, flagsRX)
	for _, v := range []uint64{nopCode, nopBase + nopCode, nopBase + nopCode, pageSize, pageSize, pageSize} {
		b = le.AppendUint64(b, v)
	}
	program := make([]byte, nopCode+pageSize)
	copy(program, b)
	main := []byte{
		0x48, 0x83, 0xec, 0x10, // sub $16, %rsp
		0x31, 0xff, 0x48, 0x89, 0xe6, // xor %edi, %edi; mov %rsp, %rsi
		0xba, 1, 0, 0, 0, 0x31, 0xc0, 0x0f, 0x05, // mov $1, %edx; xor %eax, %eax; syscall (read)
		0xbb, nopCalls, 0, 0, 0, 0x45, 0x31, 0xe4, // mov $100, %ebx; xor %r12d, %r12d
		0x89, 0xdf, // 1: mov %ebx, %edi
		0xe8, 0, 0, 0, 0, // call the leaf
		0x49, 0x09, 0xc4, // or %rax, %r12
		0xff, 0xcb, 0x75, 0xf2, // dec %ebx; jne 1b
		0x31, 0xff, 0x4d, 0x85, 0xe4, 0x40, 0x0f, 0x95, 0xc7, // xor %edi, %edi; test %r12, %r12; setne %dil
		0xb8, 60, 0, 0, 0, 0x0f, 0x05, // mov $60, %eax; syscall (exit)
	}
	call := bytes.IndexByte(main, 0xe8) + 1
	le.PutUint32(main[call:], uint32(nopLeaf-nopCode-call-4))
	copy(program[nopCode:], main)
	copy(program[nopLeaf:], []byte{
		0x48, 0x89, 0x7c, 0x24, 0xf8, 0x48, 0x89, 0x7c, 0x24, 0xf0, // mov %rdi, -8(%rsp); mov %rdi, -16(%rsp)
		0x0f, 0x1f, 0x44, 0, 0, // nopl 0(%rax,%rax,1)
		0x48, 0x8b, 0x44, 0x24, 0xf8, 0x48, 0x33, 0x44, 0x24, 0xf0, // mov -8(%rsp), %rax; xor -16(%rsp), %rax
		0xc3, // ret
	})
	return program
}
