// Functions that the compiler inlines. Each counts its calls.
package main

import (
	"fmt"
	"os"
)

var calls [6]int

func square(v int) int {
	calls[0]++
	return v*v + len(os.Args)
}

func clamp(v, low, high int) int {
	calls[1]++
	if v < low {
		return low
	}
	return min(v, high)
}

func digits(v int) (n int) {
	calls[2]++
	for ; v != 0; v /= 10 {
		n++
	}
	return n
}

func twice(v int) int {
	calls[3]++
	return clamp(v, 2, 9) + clamp(v+len(os.Args), 3, 7)
}

type stack struct{ list []int }

func (s *stack) push(v int) {
	calls[4]++
	s.list = append(s.list, v)
}

func even(v int) bool {
	calls[5]++
	return v&1 == 0
}

//go:noinline
func sums(n int) (sum int) {
	for i := range n {
		sum += square(i)
	}
	for i := 0; i < n; i++ {
		if i%3 != 0 && !even(sum) {
			sum -= clamp(sum+i, 0, 100)
		}
	}
	return sum
}

//go:noinline
func rows(n int) (sum int) {
	var s stack
	for i := range n {
		s.push(digits(i*1000+sum%7) + twice(i))
	}
	for _, v := range s.list {
		if even(v) {
			continue
		}
		sum += square(v) + square(sum%5)
	}
	return sum
}

func main() {
	sum := 0
	for i := range 13 {
		sum += sums(i) + rows(i%9)
	}
	fmt.Println(sum)
	fmt.Fprintln(os.Stderr, calls)
}
