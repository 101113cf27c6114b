// deepgo: a goroutine recurses on a thread of its own, through a closure and a
// method, and reads standard input there.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

type node struct{ depth int }

//go:noinline
func (n node) visit(do func(int) int) int {
	room := make([]byte, 16)
	room[n.depth%16] = byte(do(n.depth))
	return int(room[n.depth%16]) + 1
}

//go:noinline
func deep(depth int) int {
	if depth > 0 {
		return node{depth}.visit(func(d int) int { return deep(d - 1) })
	}
	var b [1]byte
	n, _ := syscall.Read(0, b[:])
	return n
}

func main() {
	done := make(chan int)
	go func() {
		runtime.LockOSThread()
		fmt.Println("ready", 0)
		done <- deep(10)
	}()
	os.Exit(<-done)
}
