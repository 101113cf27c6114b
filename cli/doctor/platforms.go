package doctor

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	tool "mirador/omis/linux/criu"
)

// patience limits how long a program may take to print its version.
const patience = 10 * time.Second

// say runs a program and returns the first line of its output.
func say(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}

// version finds one of several programs and returns the version that it prints.
func version(ctx context.Context, install string, flag string, programs ...string) finding {
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		line, err := say(ctx, path, flag)
		if err != nil {
			return limited(path+" "+flag+": "+err.Error(), "try it by hand")
		}
		return fine(line)
	}
	return missing(strings.Join(programs, ", ")+" not found", install)
}

func criu(ctx context.Context) finding {
	program, err := new(tool.Finder).Find(ctx)
	if err != nil {
		do := "to save, restore and migrate processes: run 'make criu' where mirador is built, which gets one from 4.1 on"
		if os.Geteuid() != 0 {
			do += ", and be root"
		}
		return missing(err.Error(), do)
	}
	return fine(program.Path() + " has saved and restored a process")
}

func pvm(context.Context) finding {
	root := os.Getenv("PVM_ROOT")
	if root == "" {
		root = "/usr/lib/pvm3"
	}
	if _, err := os.Stat(root); err != nil {
		return missing("no PVM at "+root, "for PVM programs: apt-get install pvm pvm-dev, or set PVM_ROOT")
	}
	if _, err := exec.LookPath("pvmd"); err != nil {
		return limited(root+", but no pvmd in the PATH", "put the folder of pvmd and pvmgs into the PATH")
	}
	return fine(root)
}

func openMPI(ctx context.Context) finding {
	return version(ctx, "for Open MPI programs: apt-get install openmpi-bin", "--version", "mpirun.openmpi", "ompi_info")
}

func mpich(ctx context.Context) finding {
	return version(ctx, "for MPICH programs: apt-get install mpich", "--version", "mpiexec.mpich", "mpichversion")
}

func jdk(ctx context.Context) finding {
	return version(ctx, "for Java programs: apt-get install default-jdk-headless", "-version", "javac", "java")
}

func compiler(ctx context.Context) finding {
	return version(ctx, "to build the examples: apt-get install gcc g++", "--version", "cc", "gcc", "clang")
}
