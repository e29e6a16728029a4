// Package firstprocess is for the first process of a container, which must wait for every process whose parent has
// ended. It runs the program as a child then, passes signals to it, and ends with its exit code.
package firstprocess
