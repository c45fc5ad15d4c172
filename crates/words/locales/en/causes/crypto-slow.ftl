crypto-slow-title = A virtual machine without its host's instructions for encrypting
