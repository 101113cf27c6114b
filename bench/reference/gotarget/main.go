// Gotarget is target.c in Go, without the threads: a target for Delve, which observes Go
// programs. It prints the address of work, and calls it as often as each line of its
// standard input says.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"time"
)

//go:noinline
func work(x uint64) uint64 {
	for range 48 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func main() {
	fmt.Printf("ready %#x 0x0\n", reflect.ValueOf(work).Pointer())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		begin := time.Now()
		var sum uint64
		for range n {
			sum = work(sum)
		}
		fmt.Println(time.Since(begin).Nanoseconds())
	}
}
