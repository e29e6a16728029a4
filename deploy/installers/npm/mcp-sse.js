#!/usr/bin/env node
// Starts the program sse-server, which an optional dependency of this package holds for this system.
//
// Where Node.js can, it becomes the program: the same process, and no Node.js is left. That is so from 22.15 on, but
// for Windows. Elsewhere it waits for the program, which has its stdin, stdout and stderr, passes signals on, and ends
// as the program does.
'use strict'

const { spawn } = require('node:child_process')
const { constants } = require('node:os')
const { isatty } = require('node:tty')

const onWindows = process.platform === 'win32'

function findProgram() {
  const holder = `@mcp-sse/${process.platform}-${process.arch}`
  try {
    return require.resolve(`${holder}/bin/sse-server${onWindows ? '.exe' : ''}`)
  } catch {
    const { optionalDependencies } = require('../package.json')
    console.error(optionalDependencies[holder]
      ? `mcp-sse: the package ${holder} is missing. It is an optional dependency, which npm has left out: install ` +
        'anew without --omit=optional, on this machine.'
      : `mcp-sse: there is no program for ${process.platform} on ${process.arch}. Go builds one: ` +
        'go install github.com/mcp-sse/mcp-sse/cmd/sse-server@latest')
    process.exit(1)
  }
}

function become(program, args) {
  process.execve(program, [program, ...args], process.env)
}

function startAndWait(program, args) {
  const child = spawn(program, args, { stdio: 'inherit' })
  for (const signal of onWindows ? ['SIGINT', 'SIGBREAK'] : ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // The terminal has sent Ctrl-C to the program, too, and a second one would stop it at once.
      const sentToBoth = onWindows || (signal === 'SIGINT' && isatty(0))
      if (!sentToBoth) child.kill(signal)
    })
  }
  child.on('error', (error) => {
    console.error(`mcp-sse: ${error.message}`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    // A shell tells a program that a signal has ended by this code.
    process.exitCode = code ?? 128 + constants.signals[signal]
  })
}

const program = findProgram()
const args = process.argv.slice(2)
if (process.execve && !onWindows) {
  become(program, args)
} else {
  startAndWait(program, args)
}
