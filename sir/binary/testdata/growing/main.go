// Growing has functions with frames of different sizes whose stacks grow.
package main

import (
	"fmt"
	"os"
)

//go:noinline
func small(n int) int {
	if n == 0 {
		return 0
	}
	return small(n-1) + 1
}

//go:noinline
func large(n int) (sum int) {
	var room [700]byte
	for i := range room {
		room[i] = byte(i + n)
	}
	if n > 0 {
		sum = large(n - 1)
	}
	return sum + int(room[n%len(room)])
}

//go:noinline
func huge(n int) int {
	var room [1 << 20]byte
	room[n] = byte(n)
	return small(n) + int(room[len(os.Args)])
}

//go:nosplit
//go:noinline
func leaf(n int) int { return n * n }

func main() {
	done := make(chan int)
	go func() { done <- small(1000) + large(100) + huge(3) + leaf(4) }()
	fmt.Println(<-done)
}
