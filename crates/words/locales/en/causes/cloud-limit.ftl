cloud-limit-title = The cloud provider's limit is reached
