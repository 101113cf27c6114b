package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mirador/bench/report"
	"mirador/omis/host/proc"
)

// The program of this section has largeParts times largeFunctions functions, of a kilobyte each.
const (
	largeParts     = 20
	largeFunctions = 15000
	largeRounds    = 5
)

// largeSource are functions that call each other, jump, and take addresses.
const largeSource = `
.macro function n
	.globl function_\n
	.type function_\n, @function
function_\n:
	.cfi_startproc
	push %rbx
	.rept 38
	call function_0
	lea function_\n(%rip), %rdi
	test %rax, %rax
	jne 1f
	mov %rdi, 8(%rsp)
1:
	.endr
	pop %rbx
	ret
	.cfi_endproc
	.size function_\n, . - function_\n
.endm
.altmacro
.set number, 0
.rept COUNT
	function %number
	.set number, number + 1
.endr
.section .note.GNU-stack, "", @progbits
`

// measureLarge measures the first probe by name in a program of 300 MB.
func measureLarge(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "large", Title: "The first probe of a new gateway, in a program of 300 MB with 300,000 functions"}
	dir, err := os.MkdirTemp("", "mirador-bench-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	o.progress.Say("building the program")
	program, err := buildLarge(ctx, dir)
	if err != nil {
		return t, err
	}
	var took, cpu, memory []float64
	for round := range largeRounds {
		o.progress.Say("round %d of %d", round+1, largeRounds)
		u, err := firstInLarge(ctx, o, program)
		if err != nil {
			return t, err
		}
		took, cpu, memory = append(took, u.time), append(cpu, u.cpu), append(memory, u.memory)
	}
	t.Add(report.Row{What: "COUNT of a function", Unit: report.Nanoseconds, Ours: report.Summary(took), Goal: report.AtMost(float64(time.Second))})
	t.Add(report.Row{What: "COUNT of a function" + inCPU, Unit: report.Nanoseconds, Ours: report.Summary(cpu)})
	t.Add(report.Row{What: "memory of the gateway afterwards, less that before, in MB", Ours: report.Summary(memory), Goal: report.AtMost(100)})
	return t, nil
}

// buildLarge assembles the functions once, and links copies with other names.
func buildLarge(ctx context.Context, dir string) (string, error) {
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("part.s"), []byte(strings.Replace(largeSource, "COUNT", strconv.Itoa(largeFunctions), 1)), 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(path("main.c"), []byte("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"), 0o644); err != nil {
		return "", err
	}
	commands := [][]string{{"as", "-o", path("part.o"), path("part.s")}}
	link := []string{"gcc", "-o", path("large"), path("main.c")}
	for i := range largeParts {
		part := path(fmt.Sprintf("part%d.o", i))
		commands = append(commands, []string{"objcopy", "--prefix-symbols=part" + strconv.Itoa(i) + "_", path("part.o"), part})
		link = append(link, part)
	}
	for _, c := range append(commands, link) {
		if text, err := exec.CommandContext(ctx, c[0], c[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %.200s", c[0], err, text)
		}
	}
	return path("large"), nil
}

// firstInLarge starts a gateway and the program, and measures what a probe takes.
func firstInLarge(ctx context.Context, o options, program string) (u usage, err error) {
	o.target = program
	return u, withWorking(ctx, o, "at-start", func(s *server, _ string, _ int) error {
		pid := s.command.Process.Pid
		before, err := proc.ReadStatus(pid)
		if err != nil {
			return err
		}
		cpu, _ := cpuTimeOf(pid)
		began := time.Now()
		_, err = post(ctx, s.socket, "/mir", "application/xml",
			fmt.Sprintf(`<instrreq activated="true" flush="true"><codeRegion from="part3_function_%d"/><metric name="COUNT"/></instrreq>`, largeFunctions/2))
		if err != nil {
			return err
		}
		u.time = float64(time.Since(began))
		used, err := cpuTimeOf(pid)
		if err != nil {
			return err
		}
		u.cpu = float64(used - cpu)
		after, err := proc.ReadStatus(pid)
		u.memory = (float64(after.Resident) - float64(before.Resident)) / 1e6
		return err
	})
}
