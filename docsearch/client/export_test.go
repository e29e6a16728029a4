package client

var StateError = stateError
